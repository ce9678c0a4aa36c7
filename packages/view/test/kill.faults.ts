import { describeKills } from './support/kill-sweep.ts'

describeKills(1)
