import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'

/** A daemon without artifacts starts with less. */
const LARGE_HEAP_BYTES = 24 << 20
const LOOK_EVERY_MS = 20

const youngBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_size ?? 0

/**
 * Switches V8's optimising compilers off, until {@link compileAgain}. What gets hot in the few tenths of a second that a start takes are the
 * loader of modules and the parser of addresses, which are not needed again; for them the compilers' own code, 7 MiB, would be read in.
 */
export function compileLater(): void {
  setFlagsFromString('--no-opt')
  setFlagsFromString('--no-maglev')
}

function compileAgain(): void {
  setFlagsFromString('--opt')
  setFlagsFromString('--maglev')
}

/**
 * Keeps the memory of a start in proportion to what it builds up. Call the returned function at its end, however it went.
 *
 * Small ones, of stores with few artifacts, run without the optimising compilers ({@link compileLater}).
 *
 * Large ones, which turn out to be some while they run, get the compilers, and the young generation may grow once, to four times its size: what a start
 * makes of thousands of artifacts stays, and each collection of a small young generation copies it, and looks through the tables
 * that it is put into.
 */
export function tendStart(): () => void {
  const atFirst = youngBytes()
  let isLarge = false
  const stop = (): void => {
    clearInterval(timer)
    setFlagsFromString('--semi-space-growth-factor=1')
  }
  const timer = setInterval(() => {
    if (isLarge && youngBytes() > atFirst) return stop()
    if (isLarge || getHeapStatistics().used_heap_size < LARGE_HEAP_BYTES) return
    isLarge = true
    compileAgain()
    setFlagsFromString('--semi-space-growth-factor=4')
  }, LOOK_EVERY_MS)
  timer.unref()
  return () => {
    stop()
    compileAgain()
  }
}
