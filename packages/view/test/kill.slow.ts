import { describeKills } from './support/kill-sweep.ts'

// A sample; kill.faults.ts has every call.
describeKills(25)
