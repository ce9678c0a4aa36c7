/** Keeps this thread from everything else for so long, as work of that length would. */
export const block = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
