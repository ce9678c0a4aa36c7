import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

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

/** The end of a start; see {@link tendStart}. */
export interface TendedStart {
  /** To be called when everything is loaded and in its place, right before requests come. */
  settle(): void
  /** To be called at the end, however the start went. */
  end(): void
}

/**
 * Keeps the memory of a start in proportion to what it builds up.
 *
 * Small ones, of stores with few artifacts, run without the optimising compilers ({@link compileLater}), and end with a collection that gives pages
 * back: a tenth of the heap is code that ran once, and texts of modules that were parsed. That takes 20 to 30 ms; V8 would do it
 * some idle time later.
 *
 * Large ones, which turn out to be some while they run, get the compilers, and the young generation may grow once, to four times its size: what a start
 * makes of thousands of artifacts stays, and each collection of a small young generation copies it, and looks through the tables
 * that it is put into. They end without a collection, which would find little.
 */
export function tendStart(): TendedStart {
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
  return {
    settle: () => {
      if (!isLarge) collect()
    },
    end: () => {
      stop()
      compileAgain()
    }
  }
}

/** Collects everything that is unused, and compacts. V8 offers that to programs as a function in contexts made after this flag. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void
  setFlagsFromString('--no-expose-gc')
  // Byte code of functions that ran once, at the start, goes with it; by default it survives five more collections.
  setFlagsFromString('--bytecode-old-age=1')
  gc({ type: 'major', flavor: 'last-resort' })
  setFlagsFromString('--bytecode-old-age=6')
}
