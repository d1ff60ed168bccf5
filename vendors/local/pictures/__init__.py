"""The drawing engine: pictures from a prompt and a seed, with the protocol of Midjourney's gateways.

A picture is a window of a plane, on which every point has its colour. So pictures that are extended or enlarged
continue, and nothing but the recipe is kept.
"""
