import { Option } from 'commander'
import { type CommandTools, list } from './tools.ts'

export function addInspectCommands({ add, run, runAtOnce }: CommandTools): void {
  add('ui', 'show the models, jobs and peers in the browser, until Ctrl-C')
    .option('--no-open', 'only print the link')
    .option('--port <n>', 'default: any free port')
    .action(runAtOnce('ui', 'ui'))
  add('ls [text]', 'list the models in the store, one line per quant')
    .alias('list')
    .option(
      '--filter <filter>',
      'size>1GB, used>30d, imported<7d, complete, incomplete, away, damaged, private; repeatable',
      list
    )
    .addOption(
      new Option('--sort <key>', 'what comes first (default name)').choices(['name', 'size', 'imported', 'used'])
    )
    .addOption(new Option('--format <format>', 'how to print').choices(['table', 'json', 'csv', 'ids']))
    .action(run('inventory', 'ls'))
  add('show <ref> [name]', 'show files, sizes and licence of a model; with ns/name its quants')
    .alias('info')
    .option(
      '--context <tokens>',
      'with show hf: the context of the memory estimate; default: that of the model, at most 32768'
    )
    .action(run('model', 'show'))
  add('du [ref]', 'show how much disk space models take, alone and shared').action(run('du', 'du'))
  add('cat <target>', 'print a file of a model: REF, REF#name, REF#manifest or a digest')
    .option('--range <start-end>', 'only these bytes: 0-99, 100-, or -16 for the last 16')
    .action(run('cat', 'cat'))
  add('resolve <ref>', 'print the digests that a reference stands for').action(run('model', 'resolve'))
  add('verify-signature <ref>', 'check who signed a model (OpenSSF model signing), and that its files are unchanged')
    .option('--key <file>', 'a public key (PEM) of a signer whom you trust; repeatable', list)
    .option('--certificate <file>', "a certificate (PEM) that the signer's must lead to; repeatable", list)
    .option('--root <file>', 'a trust root of Sigstore (trusted_root.json), for signers with an identity')
    .option('--issuer <url>', 'the issuer of the identity')
    .option('--subject <name>', 'the identity: an e-mail address or a URI')
    .option('--signature <file>', 'the signature; default: model.sig beside the model')
    .option('--allow-uncovered', 'allow files that are not signed')
    .action(run('signature', 'verifyModel'))
}
