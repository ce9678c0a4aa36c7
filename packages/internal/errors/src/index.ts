export { CodedError, type ErrorExtras, ReasonedError } from './coded-error.ts'
export { decodeError, encodeError, type WireError } from './wire-error.ts'
