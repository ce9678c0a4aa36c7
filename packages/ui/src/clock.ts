/** The time in milliseconds since 1970, of this machine: the browser runs beside the daemon. */
export const nowMs = (): number => Date.now()
