export { CodedError, ReasonedError } from './coded-error.ts'
export { errnoOf, ifAbsent } from './errno.ts'
export { deserializeError, type SerializedError, serializeError } from './serialized-error.ts'
