export { CodedError, type ErrorExtras, ReasonedError } from './coded-error.ts'
export { decodeError, encodeError, type SerializedError } from './serialized-error.ts'
