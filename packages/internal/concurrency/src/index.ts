export { Gate, type Release } from './gate.ts'
export { KeyedLock } from './keyed-lock.ts'
export { forEachLimited } from './limited.ts'
export { yieldToEventLoop } from './yield.ts'
