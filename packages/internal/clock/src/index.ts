export { type Clock, systemClock, type Timer, timestampOf, within } from './clock.ts'
