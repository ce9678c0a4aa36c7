export type { AccessKeeper, KeptAccess } from './access.ts'
export { BridgeRefusal, type ToldError, textOf } from './answer.ts'
export { Bridge, type BridgeBehind, type BridgeOptions, type BridgeRequest, type PageFile } from './bridge.ts'
export { KeptAddress } from './kept-address.ts'
