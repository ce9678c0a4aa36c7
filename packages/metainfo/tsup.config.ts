import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  {
    index: 'src/index.ts',
    'leaf-hasher': 'src/leaf-hasher.ts',
    'sha256-node': 'src/sha256-node.ts',
    'sha256-pure': 'src/sha256-pure.ts'
  },
  // whoever loads or bundles the package chooses: see `imports` in package.json.
  { ...bundling({ packages: ['@noble/hashes'] }), external: ['#sha256'] }
)
