"""The import contract of a folder whose modules are layers, most of which need not be named."""

from grimp import ImportGraph
from importlinter import ContractCheck
from importlinter.contracts.layers import LayersContract

OTHERS = "*"


class RoomLayers(LayersContract):
    """Layers of one folder. `*` in a layer stands for all modules of the folder that no layer names.

    So each module of the folder has a place, and a new one belongs to that layer: its modules do not import each
    other.
    """

    type_name = "room_layers"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        options = {**self.contract_options, "exhaustive": "true"}
        [container] = options["containers"]
        modules = {module.removeprefix(f"{container}.") for module in graph.find_children(container)}
        options["layers"] = with_others(options["layers"], modules)
        return LayersContract(self.name, self.session_options, options).check(graph, verbose)


def with_others(layers: list[str], modules: set[str]) -> list[str]:
    """Return `layers` with the names of other modules instead of `*`."""
    names = [[name.strip() for name in layer.split("|")] for layer in layers]
    others = sorted(modules.difference(*names))
    named = [[other for name in layer for other in (others if name == OTHERS else [name])] for layer in names]
    return [" | ".join(layer) for layer in named if layer]
