import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

const state = '../internal/state/src'

export default library(
  {
    index: 'src/index.ts',
    parts: 'src/parts.ts',
    worker: `${state}/offload/worker.ts`,
    'document-worker': `${state}/document-worker.ts`,
    'signature-worker': `${state}/signature-worker.ts`,
    'view-worker': `${state}/view-worker.ts`
  },
  {
    ...bundling({ packages: ['ipaddr.js', 'lru-cache'], node: true }),
    // from the sources of the private packages, file by file: the threads share what they have in common with the rest.
    esbuildOptions: (esbuild) => {
      esbuild.conditions = ['svc-source']
    }
  }
)
