export { DhtNode, type DhtOptions } from './dht.ts'
export { type TrackerOptions, Trackers } from './tracker.ts'
