import { slug, slugs } from '../src/slug.mjs'
import { equal } from './check.mjs'

export const tests = {
  'words are joined by dashes': () => equal(slug('Hello World'), 'hello-world'),
  'no dash stands at an end': () => equal(slug('  Hello!  '), 'hello'),
  'those that are alike are numbered': () => equal(slugs(['a', 'b', 'a']).join(), 'a,b,a-2'),
}
