import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  { index: 'src/index.ts', parts: 'src/parts.ts' },
  {
    ...bundling({ packages: ['ipaddr.js', 'lru-cache'] }),
    // from the sources of the private packages, file by file, so that what is not used stays out: a server needs no client.
    external: ['undici'],
    esbuildOptions: (esbuild) => {
      esbuild.conditions = ['svc-source']
    }
  }
)
