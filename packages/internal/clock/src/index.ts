export { type Clock, systemClock, type Timer, timestampOf } from './clock.ts'
