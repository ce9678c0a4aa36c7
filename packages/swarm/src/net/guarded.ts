/**
 * A handler of a socket, a timer or a datagram. Whatever it throws is a defect of the engine: nobody is above it to catch it, and
 * what a stranger sent must not end the process. It is reported as a warning of the process (`SwarmDefect`), with its stack.
 */
export function guarded<Args extends unknown[]>(handler: (...args: Args) => void): (...args: Args) => void {
  return (...args) => {
    try {
      handler(...args)
    } catch (error) {
      reportDefect(error)
    }
  }
}

/** For handlers that have more to do than to report. */
export function reportDefect(error: unknown): void {
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  process.emitWarning(message, { type: 'SwarmDefect', detail: stack ?? '' })
}
