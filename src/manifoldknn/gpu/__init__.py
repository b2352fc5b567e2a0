"""The steps of the method on a GPU, by PyTorch; nothing here is imported unless asked for."""
