import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  {
    index: 'src/index.ts',
    main: 'src/app/main.ts',
    'catalog-document-worker': 'src/sources/catalog/catalog-document-worker.ts',
    'hub-document-worker': 'src/sources/hub/hub-document-worker.ts',
    'oci-document-worker': 'src/sources/oci/oci-document-worker.ts',
    'listing-worker': 'src/sources/hub/listing-worker.ts'
  },
  bundling({ packages: ['ipaddr.js', 'lru-cache', 'pino', 'smol-toml', 'typebox', 'undici'], node: true })
)
