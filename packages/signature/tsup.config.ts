import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

// Bundled: they ask for a newer Node than ours, and what signs and fetches is left out.
export default library(
  { index: 'src/index.ts' },
  bundling({
    packages: ['@sigstore/bundle', '@sigstore/core', '@sigstore/protobuf-specs', '@sigstore/verify'],
    node: true
  })
)
