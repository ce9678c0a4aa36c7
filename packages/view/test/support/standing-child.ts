// Changes a standing view between two sets of models for ever: whoever started this process kills it.
import { readFileSync } from 'node:fs'
import { syncStanding } from '@svc/view'

const { requests } = JSON.parse(readFileSync(process.argv[2]!, 'utf8'))
process.stdout.write('started\n')
for (let i = 0; ; i++) await syncStanding(requests[i % requests.length])
