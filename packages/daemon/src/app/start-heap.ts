import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'

/** A daemon without artifacts starts with less. */
const LARGE_HEAP_BYTES = 24 << 20
const LOOK_EVERY_MS = 20

const youngBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0

/**
 * Lets the young generation grow once, to four times its size, when a start turns out to build up a large heap. What a start makes of
 * thousands of artifacts stays; each collection of a small young generation copies it, and looks through the tables that it is
 * put into. Call the returned function at the end of the start: from then on the young generation keeps its size.
 */
export function growWithLargeStart(): () => void {
  const atFirst = youngBytes()
  let allowed = false
  const stop = (): void => {
    clearInterval(timer)
    setFlagsFromString('--semi-space-growth-factor=1')
  }
  const timer = setInterval(() => {
    if (allowed && youngBytes() > atFirst) return stop()
    if (allowed || getHeapStatistics().used_heap_size < LARGE_HEAP_BYTES) return
    allowed = true
    setFlagsFromString('--semi-space-growth-factor=4')
  }, LOOK_EVERY_MS)
  timer.unref()
  return stop
}
