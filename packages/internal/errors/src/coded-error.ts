/** An error that programs tell by its code; the message is for people. */
export abstract class CodedError<Code extends string, Details extends object = object> extends Error {
  /** Stable. */
  readonly code: Code
  /** Plain data: it crosses threads. */
  readonly details: Details

  constructor(code: Code, message: string, details: Details = {} as Details, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.details = details
  }
}

/** Details and cause of a {@link ReasonedError}. */
interface ErrorExtras {
  readonly details?: Readonly<Record<string, unknown>>
  readonly cause?: unknown
}

/** An error whose codes are few and whose `reason` is finer. */
export abstract class ReasonedError<Code extends string, Reason extends string = string> extends CodedError<
  Code,
  Readonly<Record<string, unknown>>
> {
  /** The defect, e.g. `piece-length`; stable. */
  readonly reason: Reason

  constructor(code: Code, reason: Reason, message: string, { details, cause }: ErrorExtras = {}) {
    super(code, message, details, cause)
    this.reason = reason
  }
}
