"""The drawing engine: pictures from a prompt and a seed, with the protocol of Midjourney's gateways.

A picture is a window of a plane, on which every point has its colour. Thus an extended or enlarged picture
continues the original, and only the recipe of a picture is kept.
"""
