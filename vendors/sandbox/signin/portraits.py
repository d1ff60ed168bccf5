"""Pictures of the people who sign in at the sandbox's providers."""

from dataclasses import dataclass

_LONG_HAIR = '<path d="M27 46c0-24 12-32 23-32s23 8 23 32v24H27z" fill="{hair}"/>'
_SHORT_HAIR = '<path d="M30 42c-2-20 10-28 20-28s22 8 20 28l-6-12H36z" fill="{hair}"/>'
_FRINGE = '<path d="M31 40c3-14 10-19 19-19s16 5 19 19c-8-1-16-5-20-11-3 6-10 10-18 11z" fill="{hair}"/>'
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100" role="img">
<rect width="100" height="100" fill="{background}"/>
{behind}
<path d="M14 100c2-22 18-28 36-28s34 6 36 28z" fill="{clothes}"/>
<path d="M42 60h16v14c-4 5-12 5-16 0z" fill="{skin}"/>
<ellipse cx="50" cy="45" rx="18" ry="22" fill="{skin}"/>
{before}
</svg>
"""


@dataclass(frozen=True, slots=True)
class Portrait:
    """A drawn portrait. Its fields are colours, except `long_hair`."""

    background: str
    skin: str
    hair: str
    clothes: str
    long_hair: bool = False

    def svg(self) -> str:
        behind, before = (_LONG_HAIR, _FRINGE) if self.long_hair else ("", _SHORT_HAIR)
        return _SVG.format(
            background=self.background,
            skin=self.skin,
            clothes=self.clothes,
            behind=behind.format(hair=self.hair),
            before=before.format(hair=self.hair),
        )
