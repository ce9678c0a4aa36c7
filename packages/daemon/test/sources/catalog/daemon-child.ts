// A daemon in a process of its own, to be killed: argv holds root, socket, hub and catalog.
import { startInspected } from '../../../src/app/daemon.ts'
import { CatalogJobs } from '../../../src/jobs/catalog-jobs.ts'

const [root, socketPath, hub, catalog] = process.argv.slice(2) as [string, string, string, string]
await startInspected({
  root,
  socketPath,
  fileConfig: {
    hub: { endpoint: hub },
    catalog: { endpoint: catalog },
    swarm: { dht: false, peer_addr: '127.0.0.1:0' }
  },
  networks: {
    catalog: (context) => new CatalogJobs(context, { timings: { checkpointMs: 50, tickMs: 20, webAfterMs: 60_000 } })
  }
})
process.stdout.write('ready\n')
