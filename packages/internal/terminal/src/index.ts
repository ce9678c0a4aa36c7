export { logLine } from './log-line.ts'
export { Output } from './output.ts'
export { escaped, printable } from './printable.ts'
