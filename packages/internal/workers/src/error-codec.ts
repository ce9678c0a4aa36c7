/**
 * How errors are passed between threads. Structured clone keeps neither an error's class nor its own properties, so
 * each package encodes its errors as plain data.
 */
export interface ErrorCodec {
  readonly encode: (error: unknown) => unknown
  /** Inverts `encode`. */
  readonly decode: (wire: never) => Error
  /** The thread ended during a call; `cause` is what it threw, if known. */
  readonly lost?: (cause: unknown) => Error
  /** The caller closed the thread. */
  readonly closed?: () => Error
}

interface PlainError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code: string | undefined
  readonly errno: number | undefined
  readonly syscall: string | undefined
}

/** Errors as plain `Error`s, with the fields of system errors. */
export const plainErrors = {
  encode(error: unknown): PlainError {
    if (!(error instanceof Error)) {
      const none = undefined
      return { name: 'Error', message: String(error), stack: none, code: none, errno: none, syscall: none }
    }
    const { name, message, stack, code, errno, syscall } = error as NodeJS.ErrnoException
    return { name, message, stack, code, errno, syscall }
  },
  decode({ message, ...fields }: PlainError): Error {
    const known = Object.entries(fields).filter(([, value]) => value !== undefined)
    return Object.assign(new Error(message), Object.fromEntries(known))
  }
} satisfies ErrorCodec
