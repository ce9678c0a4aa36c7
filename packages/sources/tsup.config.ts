import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  {
    hub: 'src/hub/index.ts',
    oci: 'src/oci/index.ts',
    'hub-parts': 'src/hub-parts.ts',
    'oci-parts': 'src/oci-parts.ts',
    'hub-document-worker': 'src/hub/hub-document-worker.ts',
    'oci-document-worker': 'src/oci/oci-document-worker.ts',
    'listing-worker': 'src/hub/listing-worker.ts'
  },
  bundling({ packages: ['lru-cache'] })
)
