export { type HubSourceOptions, hubSource } from './hub-model.ts'
