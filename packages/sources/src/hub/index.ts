export { type HubModelOptions, hubModel } from './hub-model.ts'
