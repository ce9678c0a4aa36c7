export { type KeyLine, keyEdits, tableEdit } from './edits.ts'
