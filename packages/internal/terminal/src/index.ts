export { Output, type OutputStream } from './output.ts'
export { escaped, jsonText, printable } from './printable.ts'
