import type { CommandTools } from './tools.ts'

export function addRemoveCommands({ add, run }: CommandTools): void {
  add('rm <ref...>', 'remove models; with ns/name all its quants')
    .option('--tags', 'also remove tags, which keep the models that they name')
    .action(run('remove', 'rm'))
  const renaming = (nameAndArgs: string, description: string) =>
    add(nameAndArgs, description).option('--replace', 'take over the name if another model has it')
  renaming('mv <ref> <new>', 'rename a model, or one quant of it').action(run('rename', 'mv'))
  renaming('cp <ref> <new>', 'give a model, or one quant of it, a second name').action(run('rename', 'cp'))
  const tags = add(
    'tag [ref] [tag]',
    'give the current version of a model a name that stays; without TAG list the tags'
  )
    .option('--rm', 'remove the tag')
    .option('--ls', 'list the tags')
    .action(run('tag', 'tag'))
  add('ls [ns/name]', 'list the tags, of all models or of one', tags).action(run('tag', 'tagLs'))
  add('set <ns/name:tag> [digest]', 'tag the current index, or the given one', tags).action(run('tag', 'tagSet'))
  add('rm <ns/name:tag>', 'remove a tag', tags).action(run('tag', 'tagRm'))
  add('gc', 'free the space of removed models')
    .option('--dry-run', 'only show how much space it would free')
    .option('--older-than <time>', 'also remove older versions that upgrades kept, at least this old: 0, 30d')
    .option('--partial', 'also free what unfinished downloads left, and corrupt files that were moved aside')
    .option('--grace <time>', 'keep models imported within this time: 15m, 12h, 7d (default 0)')
    .action(run('remove', 'gc'))
  add('evict <ref...>', 'free the space of models, and keep their names; with ns/name all its quants')
    .option('--force', 'evict even if no other copy is known')
    .action(run('room', 'evict'))
  add('pin <ref...>', 'never evict models; with ns/name all its quants').action(run('room', 'keep'))
  add('unpin <ref...>', 'allow models to be evicted again').action(run('room', 'unkeep'))
}
