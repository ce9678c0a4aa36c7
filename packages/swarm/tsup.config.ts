import { library } from '../../tsup.base.ts'

export default library({
  index: 'src/index.ts',
  merkle: 'src/merkle.ts',
  metainfo: 'src/metainfo.ts',
  bencode: 'src/bencode.ts',
  'leaf-hasher': 'src/leaf-hasher.ts',
  'verify-worker': 'src/verify-worker.ts',
  foreign: 'src/foreign.ts'
})
