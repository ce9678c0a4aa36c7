import { library } from '../../tsup.base.ts'
import { bundling } from '../../tsup.bundle.ts'

export default library(
  { index: 'src/index.ts' },
  bundling({ packages: ['@aws-sdk/client-s3', 'ipaddr.js', 'undici'], node: true })
)
