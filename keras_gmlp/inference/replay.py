"""Runs a function of PyTorch tensors without the Python code between its operators.

Keras takes 0.2 ms of Python for each call of a layer, a quarter of gMLP-S/16's time for an image on
a CPU. TensorFlow and JAX avoid that by compiling. `torch.compile` and `torch.export` would, too,
but they take longer to start than most programs run.
"""

import operator
import re

import keras
import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

TOLERANCE = 1e-4  # share of the largest output; on some devices sums have no fixed order
IN_PLACE = re.compile(r".*[^_]_|__i\w+__")  # names of functions that change their first argument


class Replayed:
    """A function of a batch that records its operators in the second call and then replays them."""

    # A program that calls it once, as for a single image, does not wait for a recording. The
    # recording shares the weights, so it follows their changes. The values of the batch must not
    # decide which operators the function calls.

    def __init__(self, function):
        self.function, self.calls = function, 0

    @torch.no_grad()
    def __call__(self, batch):
        if self.calls == 1:
            self.function = record_or_keep(self.function, batch)
        self.calls += 1
        return self.function(batch)


def record_or_keep(function, batch):
    """Returns the recording of a function for such a batch, or the function if they differ."""
    shape = batch.shape[1:]
    ramp = torch.linspace(0, 255, 2 * shape.numel(), dtype=batch.dtype, device=batch.device)
    samples = ramp.reshape(2, *shape)
    sample = samples[:1]
    recorder = _Recorder(sample)
    try:
        with recorder:
            output = function(sample)
        recorder.graph.output(recorder.node(output))
        recording = torch.fx.GraphModule(recorder.root, recorder.graph)
        found, expected = recording(samples), function(samples)
        same = (found - expected).abs().max() <= TOLERANCE * expected.abs().max()
    except Exception:  # of an operator that cannot be recorded; its errors have many classes
        same = False
    return recording if same else function


class _Recorder(TorchFunctionMode):
    """Adds a node to a graph for each function of PyTorch that returns a new tensor."""

    def __init__(self, sample):
        super().__init__()
        self.root, self.graph = torch.nn.Module(), torch.fx.Graph()
        self.known = {}  # (tensor, node) by the tensor's id, which is unique while it is held
        self._add(sample, self.graph.placeholder("batch"))

    def __torch_function__(self, function, types, args=(), kwargs=None):
        args, kwargs = pytree.tree_map_only(
            keras.Variable, self._value, (tuple(args), kwargs or {})
        )
        output = function(*args, **kwargs)
        # Others read a shape, or cast a tensor to the type that it has and return it.
        given = any(output is argument for argument in args)
        has_tensor = any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(output))
        if has_tensor and (not given or IN_PLACE.fullmatch(function.__name__)):
            self._record(function, args, kwargs, output)
        return output

    def node(self, tensor):
        """Returns the node of a tensor; one that no function has returned is a weight."""
        if id(tensor) not in self.known:
            name = f"weight_{len(self.known)}"
            setattr(self.root, name, tensor)
            self._add(tensor, self.graph.get_attr(name))
        return self.known[id(tensor)][1]

    def _value(self, variable):
        with self:  # which PyTorch turns off in __torch_function__; the value may be cast
            return variable.value

    def _record(self, function, args, kwargs, output):
        args, kwargs = pytree.tree_map_only(torch.Tensor, self.node, (args, kwargs))
        name = function.__name__
        if name == "__get__":  # an attribute such as x.T
            node = self.graph.call_function(getattr, (args[0], function.__self__.__name__))
        elif getattr(torch.Tensor, name, None) is function:
            node = self.graph.call_method(name, args, kwargs)
        else:
            node = self.graph.call_function(function, args, kwargs)
        if isinstance(output, torch.Tensor):
            self._add(output, node)
        else:  # the parts of a split
            for i, part in enumerate(output):
                self._add(part, self.graph.call_function(operator.getitem, (node, i)))

    def _add(self, tensor, node):
        self.known[id(tensor)] = tensor, node
