"""Several processes that share each batch, as ``torchrun`` starts them.

Every process holds the whole network, takes its part of a batch's rows, and adds up gradients with
the others before each step. All draw the random numbers of the whole batch and use those of their
rows, so that together they take the step that one process takes on the same batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, distributed


@dataclass(frozen=True)
class Team:
    """This process among those that share each batch.

    Attributes
    ----------
    rank, size : int
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def present(cls, device: str) -> Team:
        """The processes that ``torchrun`` has started, connected; alone without it."""
        if not distributed.is_available():
            return cls()
        if not distributed.is_initialized():
            if not distributed.is_torchelastic_launched():
                return cls()
            distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
        return cls(distributed.get_rank(), distributed.get_world_size())

    def part(self, n_rows: int) -> slice:
        """This process's rows of a batch."""
        return slice(n_rows * self.rank // self.size, n_rows * (self.rank + 1) // self.size)

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replaces each tensor by its sum over all processes."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        self._sum(flat)
        for tensor, total in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))

    def _sum(self, flat: Tensor) -> None:
        distributed.all_reduce(flat)

    def same(self, number: int) -> int:
        """The number of the first process, for all of them."""
        if self.size == 1:
            return number
        box = [number]
        distributed.broadcast_object_list(box)
        return int(box[0])
