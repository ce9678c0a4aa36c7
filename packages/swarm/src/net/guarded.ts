/**
 * Wraps a handler of a socket, a timer or a datagram. An error it throws is a defect of the engine that nobody above
 * would catch, and input from strangers must not end the process. So it is reported as a warning of the process
 * (`SwarmDefect`), with its stack.
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

/** For handlers that do more than report a defect. */
export function reportDefect(error: unknown): void {
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  process.emitWarning(message, { type: 'SwarmDefect', detail: stack ?? '' })
}
