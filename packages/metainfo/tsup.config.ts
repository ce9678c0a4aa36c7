import { library } from '../../tsup.base.ts'

export default library(
  {
    index: 'src/index.ts',
    'leaf-hasher': 'src/leaf-hasher.ts',
    'sha256-node': 'src/sha256-node.ts',
    'sha256-pure': 'src/sha256-pure.ts'
  },
  // Whoever loads or bundles the package chooses: see `imports` in package.json.
  { external: ['#sha256'] }
)
