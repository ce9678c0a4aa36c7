import { Option } from 'commander'
import { type CommandTools, list } from './tools.ts'

export function addInspectCommands({ add, run, runAtOnce }: CommandTools): void {
  add('ui', 'show the models, jobs and peers in the browser, until Ctrl-C')
    .option('--no-open', 'only print the link')
    .option('--port <n>', 'port to listen on; default: any free port')
    .option('--stay', 'keep the address and who was let in over restarts; svc ui then prints links into this page')
    .action(runAtOnce('ui', 'ui'))
  add('ls [text]', 'list the models in the store, one line per quant')
    .alias('list')
    .option(
      '--filter <filter>',
      'size>1GB, used>30d, imported<7d, complete, incomplete, away, damaged, private; repeatable',
      list
    )
    .addOption(new Option('--sort <key>', 'sort order (default name)').choices(['name', 'size', 'imported', 'used']))
    .addOption(new Option('--format <format>', 'output format').choices(['table', 'json', 'csv', 'ids']))
    .action(run('inventory', 'ls'))
  add('ps', 'list the programs, jobs and peers that use a model now').action(run('ps', 'ps'))
  add('show <ref> [name]', 'show files, sizes and licence of a model; with ns/name its quants')
    .alias('info')
    .option(
      '--context <tokens>',
      "with show hf: context length for the memory estimate; default: the model's, at most 32768"
    )
    .action(run('model', 'show'))
  add('inspect <target> [name]', 'show what would run code in a model, and what is malformed: REF, PATH or hf ORG/NAME')
    .option('--strict', 'exit with 5 if there is anything')
    .action(runAtOnce('inspect', 'inspect'))
  add('du [ref]', 'show the disk space that models take, alone and shared').action(run('du', 'du'))
  add('cat <target>', 'print a file of a model: REF, REF#name, REF#manifest or a digest')
    .option('--range <start-end>', 'only these bytes: 0-99, 100-, or -16 for the last 16')
    .action(run('cat', 'cat'))
  add('resolve <ref>', 'print the digests that a reference resolves to').action(run('model', 'resolve'))
  add('verify-signature <ref>', 'check who signed a model (OpenSSF model signing), and that its files are unchanged')
    .option('--key <file>', 'public key (PEM) of a trusted signer; repeatable', list)
    .option(
      '--certificate <file>',
      "CA certificate (PEM) that the signer's certificate must chain to; repeatable",
      list
    )
    .option('--root <file>', 'Sigstore trust root (trusted_root.json), for signers with an identity')
    .option('--issuer <url>', 'issuer of the identity')
    .option('--subject <name>', 'the identity: e-mail address or URI')
    .option('--signature <file>', 'signature file; default: model.sig beside the model')
    .option('--allow-uncovered', 'allow files that the signature does not cover')
    .action(run('signature', 'verifyModel'))
}
