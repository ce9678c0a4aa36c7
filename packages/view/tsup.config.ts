import { library } from '../../tsup.base.ts'

export default library({ index: 'src/index.ts', 'view-error': 'src/view-error.ts' })
