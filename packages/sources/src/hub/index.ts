export type { HubRepository, ImportChoice } from '@svc/library'
export { type HubSourceOptions, hubSource } from './hub-model.ts'
