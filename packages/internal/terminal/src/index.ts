export { Output } from './output.ts'
export { escaped, printable } from './printable.ts'
