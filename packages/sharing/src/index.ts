export type { Shared, SharedNote } from './share.ts'
