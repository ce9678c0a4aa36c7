/** An error as plain data: structured clone keeps neither its class nor its own properties. */
export interface SerializedError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly cause: SerializedError | undefined
  /** Its other properties: code, reason, details, or those of a system error. */
  readonly fields: Readonly<Record<string, unknown>>
}

const FIELDS = ['code', 'reason', 'details', 'errno', 'syscall'] as const
/** Causes have causes; further ones are of no use to anybody. */
const MAX_DEPTH = 4

export function serializeError(error: unknown, depth = 0): SerializedError {
  if (!(error instanceof Error))
    return { name: 'Error', message: String(error), stack: undefined, cause: undefined, fields: {} }
  const { name, message, stack, cause } = error
  const own = error as unknown as Readonly<Record<string, unknown>>
  const fields = Object.fromEntries(FIELDS.flatMap((key) => (own[key] === undefined ? [] : [[key, own[key]]])))
  const further = cause instanceof Error && depth < MAX_DEPTH ? serializeError(cause, depth + 1) : undefined
  return { name, message, stack, cause: further, fields }
}

/** Inverts {@link serializeError}. An error whose name is a key of `classes` gets that class again; others are plain. */
export function deserializeError(
  wire: SerializedError,
  classes: Readonly<Record<string, { readonly prototype: Error }>> = {}
): Error {
  const { name, message, stack, cause, fields } = wire
  const error = new Error(message, cause === undefined ? undefined : { cause: deserializeError(cause, classes) })
  if (Object.hasOwn(classes, name)) Object.setPrototypeOf(error, classes[name]!.prototype)
  return Object.assign(error, { name, ...fields }, stack !== undefined && { stack })
}
