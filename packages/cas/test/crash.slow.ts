import { describeKills, describeOrder } from './kill-sweep.ts'

// A sample of the kills, for every commit; `crash.faults.ts` has them all.
describeKills(4)
describeOrder()
