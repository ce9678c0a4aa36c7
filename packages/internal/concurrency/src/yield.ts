/**
 * Lets messages, timers and sockets be handled in the middle of long work. Unlike a resolved promise this goes through
 * the event loop.
 */
export const yieldToEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
