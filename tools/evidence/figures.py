"""An experiment's figure as SVG, by Matplotlib."""
import importlib.util

from evidence.experiment import size


def can_draw():
    return importlib.util.find_spec("matplotlib") is not None


def draw(figure, title, path):
    import matplotlib  # here: it may be missing, and takes a second
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "papaya", "svg.fonttype": "none"})  # the same file for the same numbers
    from matplotlib import pyplot  # after use()
    axes = pyplot.subplots(figsize=(7.5, 4.2))[1]
    for line in figure.lines:
        axes.plot(line.x, line.y, marker="o", markersize=4, linewidth=1.5, label=line.name)
    if figure.reference is not None:
        axes.axhline(figure.reference, color="grey", linewidth=1)
    if figure.log_x:
        axes.set_xscale("log", base=2)
        places = sorted({x for line in figure.lines for x in line.x})
        axes.set_xticks(places, [size(x) for x in places])
        axes.minorticks_off()
    axes.set(xlabel=figure.x, ylabel=figure.y, title=title)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, ncols=1 + len(figure.lines) // 7)
    axes.figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(axes.figure)
