"""Two hundred sentences as users of an agent say them, which lay nothing down, and sentences that do."""

from __future__ import annotations

_SAID = """
Hi, can you look at the build?
The build fails on my machine.
It worked yesterday.
I can't find the file.
I cannot reproduce it here.
We can't see why it hangs.
You can see it in the log.
It can't be that slow.
There is no error in the log.
No errors so far.
No problem.
No idea what that means.
No, that is the wrong file.
No luck with the new version.
No tests failed.
There was no answer from the server.
It has no tests yet.
Before the update it was fine.
I ran it before lunch.
It hung before it printed anything.
It worked until last week.
It runs until the queue is empty.
The server restarts after a while.
Let me know what you find.
Thanks, that helped a lot.
Please read the file in full.
Open src/app.py and tell me what it does.
Write a test for the parser.
Add a flag for the colour.
Rename the function to load_all.
Fix the typo in the title.
Run the tests again.
Show me the diff.
Commit it.
Push it to my fork.
Make it blue.
The button is too small.
It should be green by now.
What should we do next?
Why does it not work?
Is that the maximum?
The maximum was reached.
The max of the list is wrong.
It took less than a minute.
It uses more than 2 GB.
The file has over 900 lines.
It keeps crashing.
I keep getting the same message.
It keeps the old value.
The cache keeps growing.
They stay in the list.
The tests stay red.
It left the lock behind.
Leave it running.
I left the office.
The limit applies to all users.
The rate limit hit us again.
It exceeds the window.
The response was longer than I thought.
Under Linux it works.
It is below the fold.
It is above the table.
The value is within the range.
The flag is on by default.
That is what I meant.
That is not what I meant.
It is not there.
It does not compile.
It doesn't matter.
I don't know.
I don't understand the second part.
I do not think so.
I don't see a difference.
I am not sure.
Not yet.
Not really.
It's not a bug.
It's not that bad.
That isn't the cause.
That wasn't it.
It won't start.
It won't compile on Windows.
The import won't resolve.
You were right.
You are right about the lock.
You can go on.
You could try the other branch.
Could you check the other branch?
Can you see the picture?
Can't you read the file?
Do you see it, too?
Did it pass?
Are there more of them?
How many are there?
Which one is faster?
Who wrote this?
When was it added?
Where is it called?
What is the limit of the API?
Is there no other way?
Why can't it be changed?
I think the second one is better.
I like the first one.
I would take the second one.
Let's use the second one.
Let's go on with the parser.
Let's see.
Let's wait and see.
Go on.
Continue.
Okay.
Sure, go ahead.
Yes, please.
Looks good to me.
Good point.
Nice.
Hm, strange.
Wait, that is the old file.
Wait a second.
Hold on, I have to look.
I have to go now.
I need to find the cause.
We need to fix the footer.
You need to read the other file, too.
It needs a restart.
It needs another look.
The parser needs work.
This takes ages.
It is slow again.
The page is white.
The footer is gone.
I see two footers.
I restarted it.
I pulled the latest version.
I merged the branch.
I deleted the old file.
I changed the colour.
I asked the team.
I told them about it.
They said it is fine.
They want it this week.
The customer likes it.
The customer asked for a second page.
We ship on Friday.
We met on Monday.
Tomorrow is a holiday.
The meeting is at ten.
The first step is done.
Step two is next.
Now the second step.
Then the third one.
And the last one?
Also look at the docs.
Have a look at the tests.
Check the log of the server.
Look for the word timeout.
Search for where it is set.
Find the function that loads it.
Explain the last function.
Summarise what you did.
Tell me more about the second one.
Compare the two.
List the files.
Count the lines.
Print the first ten lines.
Sort them by date.
Use the new client.
Use the second key.
Take the first one.
Try again.
Try it with the other flag.
Undo the last change.
Revert it.
Put it back.
Remove the print.
Delete the old test.
Move it to utils.py.
Split the function.
Join the two lists.
Replace the loop.
Here is the log:
Here is what I get.
This is the output.
See the picture.
The second picture shows it.
It says that the token is wrong.
It says "access denied".
The message is: file not found.
The docs say something else.
The README is out of date.
The comment is wrong.
The name is misleading.
The types do match.
The types don't match.
The two lists have the same length.
It returns None.
It returns the same thing twice.
It prints nothing.
It prints 5 lines.
It has 3 workers.
There are 12 files.
We had 40 users last week.
The test took 5 min.
The job runs every hour.
The key is in the vault.
The server is in Frankfurt.
"""

ORDINARY = tuple(_SAID.strip().split("\n"))

_RULES = """
The bill cannot exceed 50 dollars.
Max 5 workers.
max. 5 retries
Five files at most.
10 files max.
The limit is 5 requests a second.
Stay under 20 dollars.
Keep it below 200 ms.
Keep the answer short.
Limit the output to 20 lines.
Responses can't be longer than 3 lines.
Nothing larger than 2 MB goes into git.
Not before Monday.
Finish by Friday at the latest.
You can't merge this yourself.
You're not allowed to use the network.
You are not to call the provider.
No pushes to main.
No emojis in commit messages, please.
Short sentences, no emojis.
Nobody may see the keys.
Nothing leaves this machine.
Nothing but plain SQL.
Secrets are not to be logged.
Force pushes are banned.
Hands off the database.
Stay out of the vendor folder.
Leave the tests alone.
Leave src/legacy as it is.
Stop adding comments.
Avoid global state.
Don't ever delete the backups.
Don\u00b4t push.
Make sure not to touch the parser.
Be careful not to break the API.
I'd rather you didn't touch it.
I won't accept new dependencies.
**No** pushes to main.
Be sure to run the linter.
Remember to update the changelog.
It has to be compatible with Python 3.8.
It's important that the tests pass.
This is non-negotiable.
From now on answer in French.
Each time you change the schema, run the migration test.
Use pnpm, not npm.
Use tabs instead of spaces.
Work on the branch until I say so.
Before pushing, ask me.
Ask me first.
Check with me before merging.
Wait for my go before you deploy.
Hold off until I have reviewed it.
Once I approve it you can merge.
Deployments need my approval.
Not without my OK.
Under no circumstances change the schema.
"""

LAID_DOWN = tuple(_RULES.strip().split("\n"))
